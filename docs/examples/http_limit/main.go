// An HTTP server that asks Weir first: http_limit [WEIR [PORT]]
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	weirv1 "example.com/you/weirv1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

var statuses = map[weirv1.Reason]int{
	weirv1.Reason_REASON_LIMITED:       http.StatusTooManyRequests,
	weirv1.Reason_REASON_NEVER:         http.StatusForbidden,
	weirv1.Reason_REASON_BANNED:        http.StatusTooManyRequests,
	weirv1.Reason_REASON_DENY_LIST:     http.StatusForbidden,
	weirv1.Reason_REASON_STORE_FAILURE: http.StatusServiceUnavailable,
}

// limited lets a request through to next if Weir allows it.
func limited(weir weirv1.RateLimitServiceClient, next http.Handler) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		consumer := request.Header.Get("X-User")
		if consumer == "" {
			consumer = "nobody"
		}
		answer, err := weir.ShouldAllow(ctx, &weirv1.ShouldAllowRequest{
			Resource: request.URL.Path, Consumer: consumer, Headers: true,
		})
		if err != nil {
			code := http.StatusInternalServerError
			if status.Code(err) == codes.Unavailable || status.Code(err) == codes.DeadlineExceeded {
				code = http.StatusServiceUnavailable
			}
			http.Error(response, "The rate limit cannot be checked", code)
			return
		}
		for name, value := range answer.Headers {
			response.Header().Set(name, value)
		}
		// A request with an Id that is known is allowed with `applied: false`, and charges nothing. This server sends
		// none. Whoever sends one makes it here: a caller that chooses its id passes as often as it likes.
		if !answer.Allowed {
			http.Error(response, answer.Message, statuses[answer.Reason])
			return
		}
		next.ServeHTTP(response, request)
	}
}

func argument(place int, otherwise string) string {
	if len(os.Args) > place {
		return os.Args[place]
	}
	return otherwise
}

func main() {
	credentials := grpc.WithTransportCredentials(insecure.NewCredentials())
	connection, err := grpc.NewClient(argument(1, "127.0.0.1:8081"), credentials)
	if err != nil {
		log.Fatal(err)
	}
	hello := http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(response, "hello")
	})
	handler := limited(weirv1.NewRateLimitServiceClient(connection), hello)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+argument(2, "8000"), handler))
}
