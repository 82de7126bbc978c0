"""The life of a session around the state machine: how it begins, answers, recovers and ends."""
