package catalogue

var countSentences = sentences{
	"count.processes":         {One: "%d process", EN: "%d processes", ZH: "%d 个进程"},
	"count.clients-wait":      {One: "%d client waits", EN: "%d clients wait", ZH: "%d 个客户端"},
	"count.looks":             {One: "%d look", EN: "%d looks", ZH: "%d 次"},
	"count.connections-are":   {One: "%d connection is", EN: "%d connections are", ZH: "%d 个连接"},
	"count.locks":             {One: "%d lock", EN: "%d locks", ZH: "%d 把锁"},
	"count.processes-of-host": {One: "%d other process of the host is", EN: "%d other processes of the host are", ZH: "%d 个进程"},
	"count.of-them-have":      {One: "%d of them has", EN: "%d of them have", ZH: "%d 把锁"},
	"count.renewals":          {One: "%d renewal", EN: "%d renewals", ZH: "%d 次续期"},
	"count.renewals-were":     {One: "%d renewal was", EN: "%d renewals were", ZH: "%d 次续期"},
	"size.gib":                {EN: "%s GiB", ZH: "%s GiB"},
	"size.mib":                {EN: "%s MiB", ZH: "%s MiB"},
	"size.bytes":              {EN: "%d bytes", ZH: "%d 字节"},
	"count.keys":              {One: "%d key", EN: "%d keys", ZH: "%d 个键"},
	"count.times":             {One: "once", EN: "%d times", ZH: "%d 次"},
	"count.changes":           {One: "%d change", EN: "%d changes", ZH: "%d 次更改"},
	"count.replicas":          {One: "%d replica", EN: "%d replicas", ZH: "%d 个副本"},
	"count.commands":          {One: "%d command", EN: "%d commands", ZH: "%d 条命令"},
	"count.locks-left":        {One: "%d lock", EN: "%d locks", ZH: "%d 把"},
	"count.calls":             {One: "%d call", EN: "%d calls", ZH: "%d 次调用"},
	"count.calls-wait":        {One: "%d call waits", EN: "%d calls wait", ZH: "%d 个调用"},
}
