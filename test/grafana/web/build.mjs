// Bundles page.tsx into the file that is named.
import { build } from 'esbuild';

await build({
  entryPoints: ['page.tsx'], bundle: true, outfile: process.argv[2], format: 'iife', jsx: 'automatic', logLevel: 'error',
  define: { 'process.env.NODE_ENV': '"production"', global: 'window' },
  loader: { '.svg': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' },
  mainFields: ['browser', 'module', 'main'],
  external: ['stream', 'util', 'tty', 'os'],
  plugins: [
    {
      // They come in two forms, and registries of one are empty for the other.
      name: 'one copy of each package of Grafana',
      setup(b) {
        b.onResolve({ filter: /^@grafana\/(data|ui|runtime|scenes|schema|e2e-selectors|i18n)$/ }, (a) =>
          a.kind === 'require-call' || a.pluginData === 'again' ? undefined : b.resolve(a.path, { kind: 'require-call', resolveDir: a.resolveDir, pluginData: 'again' })
        );
      },
    },
    {
      name: 'generated types, asked for without their ending',
      setup(b) {
        b.onResolve({ filter: /^@grafana\/schema\/dist\/esm\/raw\/.*\.gen$/ }, (a) => b.resolve(a.path + '.js', { kind: a.kind, resolveDir: a.resolveDir }));
      },
    },
  ],
});
