package scanner_test
import ("testing";"time";"fmt"
"github.com/locksteward/locksteward/internal/testredis")
func TestDbg(t *testing.T){
	cluster := testredis.StartCluster(t)
	c := cluster.Client(t)
	fill(t, c, 6000)
	for i := range 30 { must(t, c.Set(t.Context(), fmt.Sprintf("lock:%d", i), "x", 0).Err()) }
	s := slow(cluster.URL()).build(t)
	for range 4 { b:=time.Now(); sweep(t,s); fmt.Println(time.Since(b), s.Stats().Throttled) }
}
