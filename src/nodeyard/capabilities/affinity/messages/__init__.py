"""Messages of affinity: one class per reason and kind of object, with its facts and its sentence.

objects         any object: finalizers, deletion, pause
tenants         Tenants, their Namespaces and values
definitions     ApplicationDefinitions and their CRDs
applications    applications, their classes and HelmReleases
classes         AffinityClasses
pods            pods, their owners and their placement
steps           the steps that lead to a decision, and what would change it
"""
