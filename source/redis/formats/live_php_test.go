package formats_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

const (
	symfonyProgram = `
require '/usr/share/php/Symfony/Component/Lock/autoload.php';
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $argv[1]);
$factory = new Symfony\Component\Lock\LockFactory(new Symfony\Component\Lock\Store\RedisStore($redis));
$lock = $factory->createLock('invoice', 60, false);
echo "waiting\n";
$lock->acquire(true);
echo "held\n";
while (fgets(STDIN) !== false) {
    echo $lock->isAcquired() ? "mine\n" : "not mine\n";
}
`
	laravelProgram = `
require '/usr/share/php/Illuminate/Cache/autoload.php';
require '/usr/share/php/Illuminate/Redis/autoload.php';
$redis = new Illuminate\Redis\RedisManager(null, 'phpredis', [
    'client' => 'phpredis', 'options' => ['prefix' => 'laravel_database_'],
    'default' => ['host' => '127.0.0.1', 'port' => (int) $argv[1], 'database' => 0],
]);
$lock = (new Illuminate\Cache\RedisStore($redis, 'laravel_cache_', 'default'))->lock('order', 60);
echo "waiting\n";
while (!$lock->acquire()) {
    usleep(20000);
}
echo "held\n";
while (fgets(STDIN) !== false) {
    echo $lock->release() ? "released\n" : "not mine\n";
}
`
)

// As TestLivePython, for PHP.
func TestLivePHP(t *testing.T) {
	t.Parallel()
	want := func(typ string, confidence locksteward.Confidence) locksteward.Lock {
		return locksteward.Lock{Observation: locksteward.Observation{Type: typ, Confidence: confidence, Identity: locksteward.IdentityLineage, TTL: time.Minute}}
	}
	for _, tt := range []struct {
		name, packages, probe, program string
		l                              live
	}{
		{
			"symfony", "php-cli php-redis php-symfony-lock", `exit(class_exists("Redis") && @include("/usr/share/php/Symfony/Component/Lock/autoload.php") ? 0 : 1);`, symfonyProgram,
			live{format: "symfony-lock", key: "invoice", want: want("zset", locksteward.ConfidenceHigh), after: "not mine", poll: "eval"},
		},
		{
			"laravel", "php-cli php-redis php-illuminate-cache php-illuminate-redis", `exit(class_exists("Redis") && @include("/usr/share/php/Illuminate/Redis/autoload.php") ? 0 : 1);`, laravelProgram,
			live{format: "laravel-lock", key: "laravel_database_laravel_cache_:order", want: want("string", locksteward.ConfidenceHigh), after: "not mine", poll: "set"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			php := interpreter(t, false, tt.packages, []string{"-r", tt.probe}, "php")
			tt.l.program = []string{php, "-d", "display_errors=stderr", "-r", tt.program, "--"}
			tt.l.run(t)
		})
	}
}
