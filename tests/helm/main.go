// Renders a chart many times in one process, as `helm install --dry-run=client` would: with its schema, its hooks and its
// notes. Reads {"chart": DIR, "cases": [{"name", "values"}]} from stdin, and prints one result for each case.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/releaseutil"
	kubernetes "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

type input struct {
	Chart string `json:"chart"`
	Cases []struct {
		Name   string         `json:"name"`
		Values map[string]any `json:"values"`
	} `json:"cases"`
}

type result struct {
	Name      string   `json:"name"`
	Error     string   `json:"error,omitempty"`
	Manifests []string `json:"manifests,omitempty"`
	Notes     string   `json:"notes,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run() error {
	var given input
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		return err
	}
	results := []result{}
	for _, one := range given.Cases {
		// Rendering changes the chart: it coalesces values into it.
		loaded, err := loader.Load(given.Chart)
		if err != nil {
			return err
		}
		results = append(results, render(loaded, one.Name, one.Values))
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func render(loaded *chart.Chart, name string, values map[string]any) result {
	install := action.NewInstall(&action.Configuration{})
	install.ReleaseName, install.Namespace = "weir", "default"
	install.DryRun, install.ClientOnly, install.Replace = true, true, true
	install.KubeVersion = &chartutil.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}
	release, err := install.Run(loaded, values)
	if err != nil {
		return result{Name: name, Error: err.Error()}
	}
	manifests := []string{}
	for _, text := range releaseutil.SplitManifests(release.Manifest) {
		manifests = append(manifests, text)
	}
	for _, hook := range release.Hooks {
		manifests = append(manifests, hook.Manifest)
	}
	for _, text := range manifests {
		if err := monitors(text); err != nil {
			return result{Name: name, Error: err.Error()}
		}
	}
	return result{Name: name, Manifests: manifests, Notes: release.Info.Notes}
}

// Decodes what Prometheus' operator reads strictly into its types.
func monitors(text string) error {
	if !strings.Contains(text, "apiVersion: monitoring.coreos.com/v1") {
		return nil
	}
	var kind struct{ Kind string }
	if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "PodMonitor":
		return strictly(text, &monitoring.PodMonitor{})
	case "PrometheusRule":
		return strictly(text, &monitoring.PrometheusRule{})
	}
	return fmt.Errorf("unknown kind %s of monitoring.coreos.com/v1", kind.Kind)
}

func strictly(text string, object any) error {
	bytes, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return err
	}
	strict, err := kubernetes.UnmarshalStrict(bytes, object)
	return errors.Join(append(strict, err)...)
}
