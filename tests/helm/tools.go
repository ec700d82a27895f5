//go:build tools

// Keeps the command line of Helm in go.mod.
package main

import _ "helm.sh/helm/v3/cmd/helm"
