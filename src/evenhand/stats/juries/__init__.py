"""Several judges as one: what their votes come to (`votes`), how weights are learned (`jury`),
which rule suits them and how right it is (`accuracy`), how far they are one judge (`independence`).
"""
