"""Validates manifests against the schemas of Kubernetes, and prints them as one JSON list."""

import json
import pathlib
import sys

import kubernetes_validate
import yaml

OLDEST = "1.31"

resources = []
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.yaml")):
    for resource in yaml.safe_load_all(path.read_text()):
        if resource["kind"] != "Kustomization":  # a file of kubectl, for which the cluster has no schema
            for version in (OLDEST, kubernetes_validate.latest_version()):
                kubernetes_validate.validate(resource, version, strict=True)
        resources.append(resource)
json.dump(resources, sys.stdout)
