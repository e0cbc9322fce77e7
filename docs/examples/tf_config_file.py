# SPDX-License-Identifier: Apache-2.0
"""TF_CONFIG out of the file that `gpulaunch --tf-config=file` writes.

Put this file beside the training script and begin that with

    import tf_config_file
    tf_config_file.load()        # before the strategy is made

Linux passes no variable longer than 128 KiB to a program, but a program may
make a longer one for itself. It then cannot start other programs, so take it
away once the strategy has read it:

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf_config_file.unload()
"""

import os


def load():
    """Set TF_CONFIG from the file; without one, leave everything alone."""
    path = os.environ.get("GPULAUNCH_TF_CONFIG_FILE")
    if path:
        with open(path, encoding="ascii") as file:
            os.environ["TF_CONFIG"] = file.read()


def unload():
    """Remove what load() has set."""
    if os.environ.get("GPULAUNCH_TF_CONFIG_FILE"):
        os.environ.pop("TF_CONFIG", None)
