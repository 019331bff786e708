"""A 3D U-Net that finds organs in a scan, in the shape of MLPerf's."""
