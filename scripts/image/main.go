// Builds the images of deploy/Dockerfile without a daemon: an OCI layout with an image for each architecture, and an archive for
// `docker load` and `kind load image-archive` for each. Times are those of 1970, so that the same binary gives the same digest.
//
//	image --version 0.1.0 --revision COMMIT --owner OWNER --out target/image amd64=BINARY arm64=BINARY
//
// User, entry point, command, ports and labels are read from the Dockerfile.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

var (
	version      = flag.String("version", "", "version of the program")
	revision     = flag.String("revision", "unknown", "commit of the sources")
	owner        = flag.String("owner", "OWNER", "owner of the sources on the forge")
	dockerfile   = flag.String("dockerfile", "deploy/Dockerfile", "the Dockerfile")
	certificates = flag.String("certificates", "/etc/ssl/certs/ca-certificates.crt", "public authorities")
	out          = flag.String("out", "target/image", "folder for the layout and the archives")
)

// Images by their targets in the Dockerfile.
var targets = []string{"weir", "weir-ratelimit"}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := os.ReadFile(*dockerfile)
	if err != nil {
		return err
	}
	for _, target := range targets {
		if err := build(string(text), target); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	return nil
}

func build(text, target string) error {
	var index v1.ImageIndex = empty.Index
	for _, given := range flag.Args() {
		arch, binary, ok := strings.Cut(given, "=")
		if !ok {
			return fmt.Errorf("%q is not ARCHITECTURE=BINARY", given)
		}
		image, err := imageOf(text, target, arch, binary)
		if err != nil {
			return err
		}
		platform := v1.Platform{OS: "linux", Architecture: arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
		tag, err := name.NewTag(target + ":" + *version)
		if err != nil {
			return err
		}
		archive := filepath.Join(*out, target+"-"+arch+".tar")
		if err := os.MkdirAll(*out, 0o755); err != nil {
			return err
		}
		if err := tarball.WriteToFile(archive, tag, image); err != nil {
			return err
		}
		fmt.Println(archive)
	}
	folder := filepath.Join(*out, target)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	index = mutate.IndexMediaType(index, types.OCIImageIndex)
	if _, err := layout.Write(folder, index); err != nil {
		return err
	}
	fmt.Println(folder)
	return nil
}

func imageOf(text, target, arch, binary string) (v1.Image, error) {
	config, err := configOf(text, target)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf(binary)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", arch, *config
	return mutate.ConfigFile(image, file)
}

// The settings of a stage and of those that it is made from.
func configOf(text, target string) (*v1.Config, error) {
	config := &v1.Config{Labels: map[string]string{}, ExposedPorts: map[string]struct{}{}, Env: []string{"PATH=/"}}
	stages := map[string]string{}
	for _, stage := range regexp.MustCompile(`(?m)^FROM `).Split(text, -1)[1:] {
		head, body, _ := strings.Cut(stage, "\n")
		base, label, ok := strings.Cut(head, " AS ")
		if !ok {
			return nil, fmt.Errorf("a stage without a name: FROM %s", head)
		}
		stages[label] = stages[base] + regexp.MustCompile(`\\\n\s*`).ReplaceAllString(body, "")
	}
	for _, line := range strings.Split(stages[target], "\n") {
		instruction, rest, _ := strings.Cut(line, " ")
		var err error
		switch instruction {
		case "USER":
			config.User = rest
		case "EXPOSE":
			for _, port := range strings.Fields(rest) {
				config.ExposedPorts[port+"/tcp"] = struct{}{}
			}
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(rest), &config.Entrypoint)
		case "CMD":
			err = json.Unmarshal([]byte(rest), &config.Cmd)
		case "LABEL":
			replace := strings.NewReplacer("${VERSION}", *version, "${REVISION}", *revision, "${OWNER}", *owner)
			for _, label := range regexp.MustCompile(`([\w.]+)="([^"]*)"`).FindAllStringSubmatch(rest, -1) {
				config.Labels[label[1]] = replace.Replace(label[2])
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	if config.User == "" || config.Entrypoint == nil {
		return nil, fmt.Errorf("no USER or ENTRYPOINT in the stages of %s", target)
	}
	return config, nil
}

func layerOf(binary string) (v1.Layer, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	authorities, err := os.ReadFile(*certificates)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	entries := []struct {
		header tar.Header
		data   []byte
	}{
		{tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{tar.Header{Name: "bin/ratelimit", Typeflag: tar.TypeSymlink, Linkname: "../weir", Mode: 0o777}, nil},
		{tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{tar.Header{Name: "etc/ssl/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{tar.Header{Name: "etc/ssl/certs/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{tar.Header{Name: "etc/ssl/certs/ca-certificates.crt", Typeflag: tar.TypeReg, Mode: 0o644}, authorities},
		{tar.Header{Name: "weir", Typeflag: tar.TypeReg, Mode: 0o755}, program},
	}
	for _, entry := range entries {
		header := entry.header
		header.Size, header.Format = int64(len(entry.data)), tar.FormatUSTAR
		if err := writer.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(entry.data); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
