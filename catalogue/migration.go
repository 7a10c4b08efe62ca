package catalogue

var migrationSentences = sentences{
	"migration/dirty.cause": {
		EN: "A migration was interrupted (an error in a statement, a kill, a lost connection) after it had marked its version as dirty. The tool refuses to go on until somebody says in which state the schema is.",
		ZH: "迁移在把其版本标记为 dirty 之后被中断（语句出错、进程被杀、连接丢失）。在有人确认 schema 的状态之前，迁移工具拒绝继续。",
	},
	"migration/dirty.remedy": {
		EN: "Look which statements of that version were carried out, repair the schema by hand, and set the version with the tool itself (migrate force VERSION). The mark is no lock and is never released from here.",
		ZH: "查明该版本的哪些语句已执行，手工修复 schema，再用迁移工具自身设置版本（migrate force VERSION）。该标记不是锁，绝不会从这里释放。",
	},
	"migration/dirty.summary":   {EN: "migration %s failed half-way: it is marked as dirty", ZH: "迁移 %s 中途失败：已被标记为 dirty"},
	"migration/dirty.under-way": {EN: "while a migration runs, its version is marked as dirty, too", ZH: "迁移运行期间，其版本同样会被标记为 dirty"},
}
