"""Messages of pools: one class per reason, with typed facts and their text.

    changes     actions that bring objects to the spec
    removals    actions and waits of a removed pool, and of a deleted LatticeCluster
    blocks      refusals, waits and warnings
    states      states of clusters, pools, classes and Machines
    placement   matching of LatticeServices with pools
    remedies    what would change a decision of `why`

Sentences of Lattice's design are interface and are copied word for word.
"""
