"""A pendulum that is turned by a torque."""
