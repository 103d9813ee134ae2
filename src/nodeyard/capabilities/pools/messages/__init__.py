"""Messages of pools: one class per reason, with typed facts and their text.

    changes     actions that bring objects to the spec
    removals    actions and waits of a removed pool, and of a deleted LatticeCluster
    blocks      refusals, waits and warnings
    states      states of clusters, pools, classes and Machines; what would change a decision of `why`
    placement   matching of LatticeServices with pools

Sentences of Lattice's design are interface and are copied word for word.
"""
