"""What an anatomy is: autoencoder, field, denoiser, sampler, populations, models on disk."""
