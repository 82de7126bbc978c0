"""What survives the process: checkpoints, journals, the lock, and the key and seal that tell our own from others'.
Each module is a door of its own.
"""
