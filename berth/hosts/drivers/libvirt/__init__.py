# SPDX-License-Identifier: Apache-2.0
"""A host with libvirt: CPUs, memory, disk, CPU traits, NUMA nodes, and vGPUs on their GPUs.

Only `connection.py` needs libvirt itself; everything else works on libvirt's XML documents.
"""
