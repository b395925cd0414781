"""Client of the iSwitch protocol, written from the text of `protocol/SPEC.md` alone.

It shares no code with the product, needs only Python's standard library, and shows that the text is sufficient: if it behaves
differently from the product's own worker, one of the two or the text has a defect. The code cites the requirements that it follows
as SPEC.md does. It is meant to be read beside the text, not to be fast.
"""
