import tensorflow as tf

calls = []


@tf.function
def step(x):
    calls.append(1)  # mistake
    return x + 1


step(step(tf.ones(3)))
print(len(calls))
