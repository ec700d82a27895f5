// Decodes manifests strictly into the types of one version of k8s.io/api: unknown fields, fields that stand twice and values of
// another type are errors. Reads a JSON list of [name, manifest] from stdin.
package main

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"os"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Of Prometheus' operator, whose types the renderer checks.
const operator = "monitoring.coreos.com/v1"

func main() {
	var manifests [][2]string
	if err := stdjson.NewDecoder(os.Stdin).Decode(&manifests); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	failed := false
	for _, one := range manifests {
		if err := check([]byte(one[1])); err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %v\n", one[0], err)
		}
	}
	if failed {
		os.Exit(1)
	}
	fmt.Println(len(manifests))
}

func check(text []byte) error {
	var kind struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return err
	}
	if kind.APIVersion == operator {
		return nil
	}
	object := map[string]any{
		"v1/ConfigMap":                           &core.ConfigMap{},
		"v1/Pod":                                 &core.Pod{},
		"v1/Service":                             &core.Service{},
		"v1/ServiceAccount":                      &core.ServiceAccount{},
		"apps/v1/Deployment":                     &apps.Deployment{},
		"autoscaling/v2/HorizontalPodAutoscaler": &autoscaling.HorizontalPodAutoscaler{},
		"networking.k8s.io/v1/NetworkPolicy":     &networking.NetworkPolicy{},
		"policy/v1/PodDisruptionBudget":          &policy.PodDisruptionBudget{},
	}[kind.APIVersion+"/"+kind.Kind]
	if object == nil {
		return fmt.Errorf("no type for %s/%s", kind.APIVersion, kind.Kind)
	}
	// As the API server does: names of fields are compared exactly, which encoding/json does not.
	bytes, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(bytes, object)
	return errors.Join(append(strict, err)...)
}
