"""The network of a latent-diffusion model, which finds the noise in a latent image under the guidance of a text."""
