"""SavedModels, Keras models and LiteRT files: read, checked, exported, computed in float64."""
