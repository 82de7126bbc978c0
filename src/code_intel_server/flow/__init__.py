"""The state machine of a session, which reaches the world only through its ports.
`dispatch` judges a submit; `ports` is what it asks the world.
"""
