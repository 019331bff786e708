"""Libraries that simulate environments of reinforcement learning, besides the frameworks that have other modes too."""
