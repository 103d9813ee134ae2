"""What is said about each kind before it is stored. A review is pure, and decides from the request and the cache."""
