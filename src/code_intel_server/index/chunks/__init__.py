"""Code cut into pieces that are searched: by definitions where a grammar knows them, in processes of their own where there is much.
`cutter` cuts many files, `chunker` one.
"""
