package console

import (
	"bytes"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/locksteward/locksteward/api"
)

// contract is docs/openapi.yaml, and what finds the operation of a request in it.
type contract struct {
	doc    *openapi3.T
	router routers.Router
}

var theContract = sync.OnceValues(func() (contract, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromFile(filepath.Join("..", "docs", "openapi.yaml"))
	if err != nil {
		return contract{}, err
	}
	if err := doc.Validate(loader.Context); err != nil {
		return contract{}, err
	}
	doc.Servers = nil // the tests have addresses of their own
	router, err := gorillamux.NewRouter(doc)
	return contract{doc, router}, err
})

// holds fails the test if an exchange with the API is not what docs/openapi.yaml
// says: a request that was taken, and every answer.
func holds(t *testing.T, req *http.Request, body string, a answer) {
	t.Helper()
	if !strings.HasPrefix(req.URL.Path, "/api/") && !strings.HasPrefix(req.URL.Path, "/-/") || req.Method == http.MethodHead {
		return // HEAD is GET without the body
	}
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	req = req.Clone(t.Context())
	req.Body = io.NopCloser(strings.NewReader(body))
	route, params, err := c.router.FindRoute(req)
	if err != nil {
		if a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed && a.status != http.StatusForbidden {
			t.Errorf("%s %s was answered with %d, and docs/openapi.yaml does not know it: %v", req.Method, req.URL.Path, a.status, err)
		}
		return
	}
	options := &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true,
	}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: options}
	if a.status < 300 {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("%s %s was taken, against docs/openapi.yaml: %v", req.Method, req.URL, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: a.status, Header: a.head, Body: io.NopCloser(bytes.NewReader([]byte(a.body))), Options: options,
	}
	if a.status == http.StatusNotModified {
		return // it has no body
	}
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		t.Errorf("%s %s: the answer %d is against docs/openapi.yaml: %v\n%s", req.Method, req.URL, a.status, err, a.body)
	}
}

// Every route of the API is in docs/openapi.yaml, and nothing else is.
func TestOpenAPIIsTheRoutes(t *testing.T) {
	t.Parallel()
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	var described, served []string
	for path, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			described = append(described, method+" "+path)
			if op.OperationID == "" || op.Summary == "" || op.Responses.Default() == nil {
				t.Errorf("%s %s lacks an operationId, a summary or a default response", method, path)
			}
		}
	}
	for _, rt := range setup(t).server.routes() {
		if strings.Contains(rt.pattern, " /api/") || strings.Contains(rt.pattern, " /-/") {
			served = append(served, rt.pattern)
		}
	}
	slices.Sort(described)
	slices.Sort(served)
	for _, one := range served {
		if !slices.Contains(described, one) {
			t.Errorf("docs/openapi.yaml lacks %s", one)
		}
	}
	for _, one := range described {
		if !slices.Contains(served, one) {
			t.Errorf("docs/openapi.yaml has %s, which is no route", one)
		}
	}
}

// The kinds of lock events are those that the agent makes.
func TestOpenAPINamesEveryLockEvent(t *testing.T) {
	t.Parallel()
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, one := range c.doc.Components.Schemas["LockEvent"].Value.Properties["kind"].Value.Enum {
		named = append(named, one.(string))
	}
	want := slices.Sorted(slices.Values(slices.Concat([]string{api.EventAcquired, api.EventRenewed}, api.EndKinds, []string{api.EventPending, api.EventFiring, api.EventResolved})))
	if slices.Sort(named); !slices.Equal(named, want) {
		t.Errorf("docs/openapi.yaml has the kinds %q, the agent %q", named, want)
	}
}

// Every object of the contract is closed, so that a field that is added to an
// answer and not to the contract fails the tests.
func TestOpenAPIObjectsAreClosed(t *testing.T) {
	t.Parallel()
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	for name, ref := range c.doc.Components.Schemas {
		if s := ref.Value; s.Type.Is("object") && (s.AdditionalProperties.Has == nil || *s.AdditionalProperties.Has) {
			t.Errorf("schema %s takes fields that it does not name", name)
		}
	}
}
