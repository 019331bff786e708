"""A perceptron for tables, with as many inputs and outputs as its data have features and classes."""
