"""The prior: an autoencoder with two decoders, a denoiser in its latent space, the zoo of trained ones."""
