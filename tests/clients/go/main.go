// What a Go program gets from Weir. Fails at the first answer that is wrong.
//
//	client HOST:PORT                decisions, streams, bounds, many calls at once
//	client HOST:PORT until-it-ends  calls that go on while connections reach their age and the server stops
//	client identity CASES           calls as different callers, over TLS
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	service = "/weir.v1.RateLimitService/"
	largest = 64 << 20
)

// Connections that have been made.
var connections int64

func main() {
	if os.Args[1] == "identity" {
		callers(os.Args[2])
		fmt.Println("all ok")
		return
	}
	connection := dial(os.Args[1])
	if len(os.Args) > 2 {
		untilItEnds(connection)
	} else {
		decisions(connection)
		standard(connection)
		streams(connection)
		bounds(connection)
		ends(connection)
		many(connection)
		equal("all of this on one connection", atomic.LoadInt64(&connections), int64(1))
	}
	must(connection.Close())
	fmt.Println("all ok")
}

func dial(address string) *grpc.ClientConn {
	within, cancel := soon()
	defer cancel()
	connect := func(within context.Context, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(within, "tcp", address)
		if err == nil {
			atomic.AddInt64(&connections, 1)
		}
		return connection, err
	}
	connection, err := grpc.DialContext(within, address, grpc.WithInsecure(), grpc.WithBlock(), grpc.WithContextDialer(connect),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest), grpc.MaxCallSendMsgSize(largest)))
	must(err)
	return connection
}

// Long enough that only what never comes is missed.
func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}

func shouldAllow(connection *grpc.ClientConn, asked *ask) (*answer, error) {
	within, cancel := soon()
	defer cancel()
	return of(connection).ShouldAllow(within, asked)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(what string, fine bool) {
	if !fine {
		panic(what)
	}
}

func equal(what string, got, wanted interface{}) {
	if !reflect.DeepEqual(got, wanted) {
		panic(fmt.Sprintf("%s: %v, not %v", what, got, wanted))
	}
	fmt.Println("ok:", what)
}

func refused(what string, err error, code codes.Code, words string) {
	check(fmt.Sprintf("%s: %v", what, err), status.Code(err) == code)
	message := status.Convert(err).Message()
	check(message, strings.Contains(message, words))
	fmt.Println("ok:", what)
}
