"""What each phase makes of its payload: one plain function a place."""
