"""Several judges as one: what their votes come to (`votes`), and how to learn and check their
weights (`jury`).
"""
