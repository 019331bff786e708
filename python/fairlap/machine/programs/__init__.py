"""Programs that run on this machine: started, watched, confined, ended, with what they started."""
