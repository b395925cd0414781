"""A client of the iSwitch protocol, written from the text of `protocol/SPEC.md` alone.

It shares no code with the product, needs nothing but Python's standard library, and exists to show that the text is enough: what it
does in another way than the product's own worker is a defect of one of them, or of the text. The requirements that a part follows
are cited as in SPEC.md. It is written to be read next to the text, and not to be fast.
"""
