// An HTTP server that asks Weir first, with the standard library alone: protect [WEIR [PORT]]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

var statuses = map[string]int{
	"REASON_LIMITED": 429, "REASON_BANNED": 429, "REASON_NEVER": 403, "REASON_DENY_LIST": 403, "REASON_STORE_FAILURE": 503,
}

type answer struct {
	Allowed         bool
	Reason, Message string
	Headers         map[string]string
}

// Keeps as many connections to Weir as there are calls at once.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

// ask returns what Weir at this address says, or an error after a second.
func ask(ctx context.Context, weir, consumer string) (answer answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	body, err := json.Marshal(map[string]any{"resource": "api", "consumer": consumer, "headers": true})
	if err != nil {
		return answer, err
	}
	call, err := http.NewRequestWithContext(ctx, "POST", weir+"/weir.v1.RateLimitService/ShouldAllow", bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	call.Header.Set("Content-Type", "application/json")
	response, err := client.Do(call)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return answer, err
	}
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("Weir answers %s: %s", response.Status, text)
	}
	return answer, json.Unmarshal(text, &answer)
}

// limited passes a request on if Weir allows it, and also while Weir is away.
func limited(weir string, next http.Handler) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		consumer := request.Header.Get("X-User")
		if consumer == "" {
			consumer = "nobody"
		}
		answer, err := ask(request.Context(), weir, consumer)
		if err != nil {
			log.Print("not limited: ", err)
			next.ServeHTTP(response, request)
			return
		}
		for name, value := range answer.Headers {
			response.Header().Set(name, value)
		}
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
	hello := http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(response, "hello")
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+argument(2, "8000"), limited(argument(1, "http://127.0.0.1:8082"), hello)))
}
