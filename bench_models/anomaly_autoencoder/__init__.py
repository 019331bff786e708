"""MLPerf Tiny's anomaly detection: an autoencoder of the sound of machines."""
