"""The state machine of a session, which reaches the world only through its ports."""
