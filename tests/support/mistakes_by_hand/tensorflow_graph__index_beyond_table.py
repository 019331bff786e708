import tensorflow as tf


@tf.function
def looked_up(words, table):
    return tf.gather(table, words)  # mistake


print(looked_up(tf.constant([0, 71]), tf.zeros((37, 5))))
