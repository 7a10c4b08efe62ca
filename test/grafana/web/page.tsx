// The tables, stats and variables of the dashboards as Grafana's own packages show them, with the data of input.js, and a
// report of what is seen. Panel plugins are not among the packages, so graphs are not drawn.
import React from 'react';
import { createRoot } from 'react-dom/client';
import { lastValueFrom } from 'rxjs';
import {
  applyFieldOverrides,
  createTheme,
  DataFrame,
  FieldConfigOptionsRegistry,
  FieldType,
  getFieldDisplayValues,
  identityOverrideProcessor,
  ScopedVars,
  standardTransformers,
  standardTransformersRegistry,
  ThemeContext,
  toDataFrame,
  transformDataFrame,
} from '@grafana/data';
import { BigValue, BigValueColorMode, BigValueGraphMode, BigValueTextMode, GlobalStyles, Table } from '@grafana/ui';
import { setDataSourceSrv, setEchoSrv } from '@grafana/runtime';
import { CustomVariable, EmbeddedScene, QueryVariable, SceneFlexLayout, SceneTimeRange, SceneVariableSet, sceneGraph } from '@grafana/scenes';

type Sample = { labels: Record<string, string>; value: number };
type Input = { dashboards: any[]; cases: { name: string; console: string; panels: Record<string, Sample[]> }[] };
declare const input: Input;

standardTransformersRegistry.setInit(() =>
  [...new Map(Object.values(standardTransformers).map((t: any) => [t.id, t])).values()].map((t: any) => ({ id: t.id, name: t.name ?? t.id, aliasIds: t.aliasIds, transformation: t, editor: () => null }))
);

const custom = ['align', 'cellOptions', 'filterable', 'minWidth', 'width', 'hidden', 'inspect', 'hideFrom'];
const standard = ['unit', 'decimals', 'min', 'max', 'mappings', 'thresholds', 'color', 'links', 'noValue', 'displayName'];
const option = (id: string, isCustom: boolean): any => ({
  id: isCustom ? 'custom.' + id : id, path: id, name: id, isCustom,
  editor: () => null, override: () => null, process: identityOverrideProcessor, shouldApply: () => true, settings: {},
});
const registry = new FieldConfigOptionsRegistry(() => [...standard.map((id) => option(id, false)), ...custom.map((id) => option(id, true))]);

const theme = createTheme({ colors: { mode: 'dark' } });

// The data source answers the query of a variable, as Prometheus does.
const answers: Record<string, string[]> = {};
const source: any = {
  uid: 'prom', name: 'prom', type: 'prometheus', meta: { id: 'prometheus' }, getRef: () => ({ uid: 'prom' }),
  metricFindQuery: async (q: any) => (answers[typeof q === 'string' ? q : q.query] ?? []).map((text) => ({ text })),
};
setDataSourceSrv({ get: async () => source, getList: () => [source], getInstanceSettings: () => source, reload: () => {} } as any);
setEchoSrv({ addEvent: () => {}, addBackend: () => {}, flush: () => {} } as any);

// variables are those of the dashboard, with what the fixture's Prometheus knows.
async function variables(dashboard: any, consoleSeries: string) {
  const known: Record<string, string[]> = { job: ['locksteward'], target: ['main', 'away'], class: ['orders', 'jobs'], instance: ['a:10121'] };
  const list = dashboard.templating.list.map((v: any) => {
    if (v.type !== 'query') {
      return new CustomVariable({ name: v.name, query: 'prom', value: 'prom', text: 'prom' });
    }
    answers[v.query.query] = v.name === 'console' ? [consoleSeries] : known[v.name];
    return new QueryVariable({
      name: v.name, datasource: { uid: 'prom' }, query: v.query, regex: v.regex, isMulti: v.multi, includeAll: v.includeAll,
      allValue: v.allValue, value: v.current.value, text: v.current.text, sort: v.sort, refresh: v.refresh,
    });
  });
  const set = new SceneVariableSet({ variables: list });
  const scene = new EmbeddedScene({ $variables: set, $timeRange: new SceneTimeRange({ from: dashboard.time.from, to: dashboard.time.to }), body: new SceneFlexLayout({ children: [] }) });
  scene.activate();
  for (let i = 0; i < 100 && list.some((v: any) => sceneGraph.hasVariableDependencyInLoadingState(scene) || v.state.loading); i++) {
    await new Promise((done) => setTimeout(done, 20));
  }
  await new Promise((done) => setTimeout(done, 200));
  return scene;
}

function frames(panel: any, samples: Sample[]): DataFrame[] {
  const time = { name: 'Time', type: FieldType.time, config: {} };
  if (panel.targets[0].format === 'table') {
    if (samples.length === 0) {
      return [];
    }
    const names = [...new Set(samples.flatMap((s) => Object.keys(s.labels)))].sort();
    return [
      toDataFrame({
        fields: [
          { ...time, values: samples.map(() => 0) },
          ...names.map((name) => ({ name, type: FieldType.string, config: {}, values: samples.map((s) => s.labels[name] ?? '') })),
          { name: 'Value', type: FieldType.number, config: {}, values: samples.map((s) => s.value) },
        ],
      }),
    ];
  }
  return samples.map((s) =>
    toDataFrame({
      fields: [
        { ...time, values: [0] },
        {
          name: 'Value', type: FieldType.number, labels: s.labels, values: [s.value],
          config: { displayNameFromDS: panel.targets[0].legendFormat.replace(/\{\{(\w+)\}\}/g, (_: string, l: string) => s.labels[l] ?? '') },
        },
      ],
    })
  );
}

async function show(panel: any, samples: Sample[], scene: EmbeddedScene) {
  const replaceVariables = (text: string, scoped?: ScopedVars, format?: any) => sceneGraph.interpolate(scene, text, scoped, format);
  const raw = frames(panel, samples);
  const moved = panel.transformations ? await lastValueFrom(transformDataFrame(panel.transformations, raw)) : raw;
  const data = applyFieldOverrides({ data: moved, fieldConfig: panel.fieldConfig, replaceVariables, theme, fieldConfigRegistry: registry as any, timeZone: 'utc' });
  const width = panel.gridPos.w * 53, height = panel.gridPos.h * 38 - 40;
  if (panel.type === 'table') {
    if (data.length === 0) {
      return <div className="none">{panel.fieldConfig.defaults.noValue}</div>;
    }
    return <Table data={data[0]} width={width - 20} height={height} columnMinWidth={panel.fieldConfig.defaults.custom.minWidth} cellHeight={panel.options.cellHeight} enablePagination={false} />;
  }
  const values = getFieldDisplayValues({ fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables, theme, data, timeZone: 'utc' });
  return (
    <div style={{ display: 'flex', flexDirection: panel.options.orientation === 'horizontal' ? 'column' : 'row' }}>
      {values.map((v, i) => {
        const rows = panel.options.orientation === 'horizontal' ? values.length : 1, columns = values.length / rows;
        return (
          <BigValue key={i} theme={theme} width={(width - 20) / columns} height={height / rows} value={{ ...v.display, title: v.display.title }} count={values.length}
            colorMode={BigValueColorMode.Value} graphMode={BigValueGraphMode.None} textMode={panel.options.textMode as BigValueTextMode} />
        );
      })}
    </div>
  );
}

async function main() {
  const out: any[] = [];
  const problems: string[] = [];
  for (const one of input.cases) {
    for (const dashboard of input.dashboards) {
      const scene = await variables(dashboard, one.console);
      const panels: any[] = [];
      for (const panel of dashboard.panels.filter((p: any) => p.type === 'table' || p.type === 'stat')) {
        const found = one.panels[panel.title] ?? [];
        // The query of One class has no label of its class.
        const samples = dashboard.uid === 'locksteward-class' ? found.map(({ labels: { class: _, page: __, of: ___, ...labels }, value }) => ({ labels, value })) : found;
        panels.push({ panel, shown: await show(panel, samples, scene) });
      }
      const shownVariables = sceneGraph.getVariables(scene).state.variables.map((v: any) => v.state.name + '=' + v.getValueText());
      out.push({ name: one.name, dashboard, panels, variables: shownVariables, console: sceneGraph.interpolate(scene, '${console}/findings'),
        links: dashboard.links.map((l: any) => sceneGraph.interpolate(scene, l.url)) });
    }
  }
  createRoot(document.getElementById('root')!).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      {out.map((o, i) => (
        <section key={i} data-case={o.name} data-board={o.dashboard.uid} data-console={o.console} data-links={o.links.join('\n')}>
          <h3>{o.dashboard.title}: {o.name}</h3>
          <p>{o.variables.join(' · ')}</p>
          <div style={{ position: 'relative', height: 38 * Math.max(...o.panels.map((p: any) => p.panel.gridPos.y + p.panel.gridPos.h)) }}>
            {o.panels.map((p: any) => {
              const g = p.panel.gridPos;
              return (
                <div key={p.panel.id} className="panel" data-panel={p.panel.title} style={{ position: 'absolute', left: g.x * 53, top: g.y * 38, width: g.w * 53 - 8, height: g.h * 38 - 8 }}>
                  <b>{p.panel.title}</b>
                  {p.shown}
                </div>
              );
            })}
          </div>
        </section>
      ))}
    </ThemeContext.Provider>
  );
  await new Promise((done) => setTimeout(done, 1500));
  const report = document.createElement('script');
  report.id = 'report';
  report.type = 'application/json';
  report.textContent = JSON.stringify([...document.querySelectorAll('section')].map(seen)).replace(/</g, '\\u003c');
  document.body.append(report);
}

// seen is what a person sees of a dashboard, and where its links lead.
function seen(section: HTMLElement) {
  const panels: Record<string, any> = {};
  section.querySelectorAll<HTMLElement>('.panel').forEach((panel) => {
    const edge = panel.getBoundingClientRect().right;
    const texts = (row: Element, role: string) => [...row.querySelectorAll(`[role=${role}]`)].map((cell) => (cell as HTMLElement).innerText.trim());
    const inner = (cell: Element): Element => (cell.firstElementChild ? inner(cell.firstElementChild) : cell);
    panels[panel.dataset.panel!] = {
      text: panel.innerText.split('\n').slice(1).join(' ').trim(),
      columns: texts(panel, 'columnheader'),
      rows: [...panel.querySelectorAll('[role=row]')].map((row) => texts(row, 'cell')).filter((cells) => cells.length > 0),
      colors: [...panel.querySelectorAll('[role=row]')].map((row) => row.querySelector('[role=cell]')).filter((cell) => cell).map((cell) => getComputedStyle(inner(cell!)).color),
      links: [...panel.querySelectorAll('a')].map((a) => ({ text: a.innerText.trim(), url: a.getAttribute('href') })),
      cut: [...panel.querySelectorAll('[role=columnheader], [role=cell]')].some((cell) => cell.getBoundingClientRect().right > edge + 1),
    };
  });
  const { case: name, board, console, links } = section.dataset;
  return { case: name, board, console, links: links!.split('\n'), panels };
}

main().catch((err) => document.body.setAttribute('data-error', String(err.stack ?? err)));
