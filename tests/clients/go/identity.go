package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// What tests/clients/identity.py describes.
type identities struct {
	Server, CA, Name string
	Cases            []identity
}

type identity struct {
	Cert, Key, Authorization, Consumer, Code string
}

// Calls as different callers.
func callers(text string) {
	var asked identities
	must(json.Unmarshal([]byte(text), &asked))
	for _, one := range asked.Cases {
		got := strings.ReplaceAll(strings.ToUpper(asked.call(one)), "_", "")
		equal(one.Consumer, got, strings.ReplaceAll(one.Code, "_", ""))
	}
}

func (asked identities) call(one identity) string {
	authorities, err := os.ReadFile(asked.CA)
	must(err)
	config := &tls.Config{ServerName: asked.Name, RootCAs: x509.NewCertPool()}
	check("an authority", config.RootCAs.AppendCertsFromPEM(authorities))
	if one.Cert != "" {
		own, err := tls.LoadX509KeyPair(one.Cert, one.Key)
		must(err)
		config.Certificates = []tls.Certificate{own}
	}
	within, cancel := soon()
	defer cancel()
	if one.Authorization != "" {
		within = metadata.AppendToOutgoingContext(within, "authorization", one.Authorization)
	}
	connection, err := grpc.DialContext(within, asked.Server, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	must(err)
	defer connection.Close()
	_, err = of(connection).ShouldAllow(within, asking("burst/x", one.Consumer))
	return status.Code(err).String()
}
