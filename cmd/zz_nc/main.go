package main
import ("context";"fmt";"time";"github.com/locksteward/locksteward/lock";"github.com/redis/go-redis/v9")
func main(){ r:=redis.NewClient(&redis.Options{Addr:"127.0.0.1:7501"}); c,err:=lock.New(r,lock.Options{App:"billing"}); if err!=nil{panic(err)}
for i:=0;i<3;i++{ h,err:=c.Acquire(context.Background(),fmt.Sprintf("lock:two:app%d",i),lock.Lease{TTL:300*time.Second,Expect:5*time.Second}); fmt.Println(h!=nil,err)}
select{} }
