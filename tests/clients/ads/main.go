// A control plane on go-control-plane, as Envoy Gateway has one: it serves what it reads on standard input.
//
//	ads ADDRESS NODE [CA CERT KEY]
//
// Lines on standard input:
//
//	set VERSION JSON…   the domains from now on, as JSON of RateLimitConfig
//	drop                no snapshot
//
// Lines on standard output: `listening ADDRESS`, and `ack VERSION NONCE`, `nack VERSION TEXT`, `open VERSION` for each
// request of a stream.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"
	"os"
	"strings"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"
)

// All nodes have one name here, whatever they say of themselves.
type byID struct{}

func (byID) ID(node *core.Node) string { return node.GetId() }

var out sync.Mutex

func say(format string, values ...any) {
	out.Lock()
	defer out.Unlock()
	fmt.Printf(format+"\n", values...)
}

func main() {
	address, node, files := os.Args[1], os.Args[2], os.Args[3:]
	snapshots := cache.NewSnapshotCache(false, byID{}, nil)
	callbacks := server.CallbackFuncs{
		StreamRequestFunc: func(_ int64, request *discovery.DiscoveryRequest) error {
			switch {
			case request.GetErrorDetail() != nil:
				text := strings.ReplaceAll(request.GetErrorDetail().GetMessage(), "\n", "|")
				say("nack %q %s", request.GetVersionInfo(), text)
			case request.GetResponseNonce() == "":
				say("open %q", request.GetVersionInfo())
			default:
				say("ack %q %s", request.GetVersionInfo(), request.GetResponseNonce())
			}
			return nil
		},
	}
	var options []grpc.ServerOption
	if len(files) == 3 {
		options = append(options, grpc.Creds(credentials.NewTLS(encrypted(files))))
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	served := grpc.NewServer(options...)
	discovery.RegisterAggregatedDiscoveryServiceServer(served, server.NewServer(context.Background(), snapshots, callbacks))
	go follow(snapshots, node)
	say("listening %s", listener.Addr())
	log.Fatal(served.Serve(listener))
}

// TLS 1.3 with certificates of clients, read again for each handshake, as Envoy Gateway has it.
func encrypted(files []string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pem, err := os.ReadFile(files[0])
			if err != nil {
				return nil, err
			}
			authorities := x509.NewCertPool()
			authorities.AppendCertsFromPEM(pem)
			certificate, err := tls.LoadX509KeyPair(files[1], files[2])
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				Certificates: []tls.Certificate{certificate},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				ClientCAs:    authorities,
				MinVersion:   tls.VersionTLS13,
				NextProtos:   []string{"h2"},
			}, nil
		},
	}
}

func follow(snapshots cache.SnapshotCache, node string) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		if words[0] == "drop" {
			snapshots.ClearSnapshot(node)
			continue
		}
		var configs []types.Resource
		for _, text := range words[2:] {
			if text == "" {
				continue // a set without domains
			}
			config := &ratelimit.RateLimitConfig{}
			if err := protojson.Unmarshal([]byte(text), config); err != nil {
				log.Fatal(err)
			}
			configs = append(configs, config)
		}
		snapshot, err := cache.NewSnapshot(words[1], map[resource.Type][]types.Resource{
			resource.RateLimitConfigType: configs,
		})
		if err != nil {
			log.Fatal(err)
		}
		if err := snapshots.SetSnapshot(context.Background(), node, snapshot); err != nil {
			log.Fatal(err)
		}
	}
	os.Exit(0)
}
