# SPDX-License-Identifier: Apache-2.0
"""The version of the module, which is that of the command."""

__version__ = "0.1.0"
