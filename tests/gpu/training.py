# SPDX-License-Identifier: Apache-2.0
"""A few steps of training on the first device, by whichever of PyTorch and
TensorFlow is installed; the loss must fall. Exit code 77: neither is, or it
sees no GPU."""
import sys


def torch_losses():
    import torch

    if not torch.cuda.is_available():
        return None
    torch.manual_seed(1)
    x = torch.randn(512, 64, device="cuda")
    y = x @ torch.randn(64, 1, device="cuda")
    model = torch.nn.Linear(64, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def tensorflow_losses():
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        return None
    tf.random.set_seed(1)
    with tf.device("/GPU:0"):
        x = tf.random.normal((512, 64))
        y = x @ tf.random.normal((64, 1))
        w = tf.Variable(tf.zeros((64, 1)))
        losses = []
        for _ in range(50):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ w - y) ** 2)
            w.assign_sub(0.05 * tape.gradient(loss, w))
            losses.append(float(loss))
    return losses


def main():
    for name, train in (("PyTorch", torch_losses),
                        ("TensorFlow", tensorflow_losses)):
        try:
            losses = train()
        except ImportError:
            continue
        if losses is not None:
            print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}")
            return 0 if losses[-1] < losses[0] / 2 else 1
    return 77


sys.exit(main())
