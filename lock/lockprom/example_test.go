package lockprom_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/lockprom"
)

// exampleClient stands for the application's own lock client.
func exampleClient() (*lock.Client, func()) {
	srv, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	client, err := lock.New(rdb, lock.Options{App: "billing"})
	if err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close()
		_ = rdb.Close()
		srv.Close()
	}
}

func ExampleNew() {
	client, stop := exampleClient()
	defer stop()

	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(lockprom.New(client))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, // exemplars
	})

	ctx := context.Background()
	h, err := client.Acquire(ctx, "lock:order:42", lock.Lease{TTL: 30 * time.Second, Class: "orders"})
	if err != nil {
		panic(err)
	}
	defer h.Release(ctx) //nolint:errcheck // An example.

	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for lines := bufio.NewScanner(rec.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "locksteward_client_acquired_total") ||
			strings.HasPrefix(lines.Text(), "locksteward_client_locks_held") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// locksteward_client_acquired_total{class="orders"} 1
	// locksteward_client_locks_held{class="orders"} 1
}

// Two deployments of Redis, told apart by a constant label.
func ExampleNewWithOptions() {
	orders, stopOrders := exampleClient()
	defer stopOrders()
	sessions, stopSessions := exampleClient()
	defer stopSessions()

	registry := prometheus.NewRegistry()
	for target, client := range map[string]*lock.Client{"orders": orders, "sessions": sessions} {
		collector, err := lockprom.NewWithOptions(lockprom.Options{
			ConstLabels: prometheus.Labels{"target": target},
			Classes:     []string{"checkout"}, // there from the first scrape on
		}, client)
		if err != nil {
			panic(err)
		}
		registry.MustRegister(collector)
	}
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if f.GetName() == "locksteward_client_locks_held" {
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					fmt.Print(l.GetName(), "=", l.GetValue(), " ")
				}
				fmt.Println(m.GetGauge().GetValue())
			}
		}
	}
	// Output:
	// class=checkout target=orders 0
	// class=checkout target=sessions 0
}
