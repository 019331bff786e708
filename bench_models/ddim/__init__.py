"""The loop in which a latent-diffusion model makes an image, as one call."""
