"""What is said about requests before they are stored, one module for each kind of object."""
