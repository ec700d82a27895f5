package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Each of so many callers makes one call after the other, until it has made enough.
func together(callers int, call func(caller int) (goOn bool)) {
	var group sync.WaitGroup
	group.Add(callers)
	for caller := 0; caller < callers; caller++ {
		go func(caller int) {
			defer group.Done()
			for call(caller) {
			}
		}(caller)
	}
	group.Wait()
}

// Calls at once on one connection: exactly as many are allowed as may be. Others are cancelled meanwhile.
func many(connection *grpc.ClientConn) {
	const callers = 200
	var made, allowed int64
	together(callers, func(caller int) bool {
		number := atomic.AddInt64(&made, 1)
		if number%10 == 0 {
			within, cancel := context.WithCancel(context.Background())
			go cancel()
			_, err := of(connection).ShouldAllow(within, asking("api/cancelled", "bob"))
			check(fmt.Sprint(err), err == nil || status.Code(err) == codes.Canceled)
		}
		got, err := shouldAllow(connection, asking("api/many", fmt.Sprint("caller-", caller)))
		must(err)
		if got.Allowed {
			atomic.AddInt64(&allowed, 1)
		}
		// Until every caller has used up what it may.
		return number < 10_000 || got.Allowed
	})
	equal("as many are allowed as may be", allowed, int64(callers*10))
}
