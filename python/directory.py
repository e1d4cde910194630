# SPDX-License-Identifier: MIT
"""The directory below a prefix where this interpreter looks for modules, or would on another prefix.

    directory.py PREFIX
"""
import os
import site
import sys

version = "python%d.%d" % sys.version_info[:2]
below = [os.path.join("lib", name, packages) for name in ("python3", version)
         for packages in ("dist-packages", "site-packages")]
searched = [d for d in below if os.path.join(sys.argv[1], d) in site.getsitepackages()]
print((searched or below[-1:])[0])
