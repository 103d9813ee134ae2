"""The built-in kinds.

One module or folder per kind holds all that is particular to it: names, subresources, defaults, validation and columns
end in its strategy, and `catalogue` lists the strategies.

    types.json ─▶ table ─┬─▶ compiler    Schema: merging, server-side apply
                         ├─▶ decoding    JSON through Go structs, with the defaults of `catalogue`
                         ├─▶ go_zero     zero values of structs
                         └─▶ openapi     what clients read
    messages.json ─▶ protobuf ─▶ decoding

`strategy`, `columns`, `validation` and `edits` are what the modules of kinds are made of.
"""
