// The frontier as a table, for keyboards and screen readers: what fits at most, by GPU.
import { scalarText } from "../../api/values";
import { isNumeric, largestFit, type Grid } from "../../charts/frontier/grid";
import { Scroll } from "../../parts/parts";
import type { Gpu } from "./capacities";

export function FrontierTable({ grid, gpus }: { grid: Grid; gpus: readonly Gpu[] }) {
  const what = isNumeric(grid.ys) ? `Largest ${grid.y} that fits` : `${grid.y} that fits`;
  return (
    <details>
      <summary>
        {what}, for each {grid.x} and GPU
      </summary>
      <Scroll label={what}>
        <table>
          <thead>
            <tr>
              <th scope="col" rowSpan={2}>
                {grid.x}
              </th>
              {gpus.map((gpu) => (
                <th key={gpu.capacity} scope="colgroup" colSpan={2}>
                  {gpu.word}
                </th>
              ))}
            </tr>
            <tr>
              {gpus.flatMap((gpu) => [
                <th key={`${gpu.capacity} written`} scope="col" class="number">
                  full batch
                </th>,
                <th key={`${gpu.capacity} split`} scope="col" class="number">
                  smaller micro-batches
                </th>,
              ])}
            </tr>
          </thead>
          <tbody>
            {grid.xs.map((x, column) => (
              <tr key={column}>
                <th scope="row" class="foreign">
                  {scalarText(x)}
                </th>
                {grid.gpus.flatMap((gpu, index) =>
                  [false, true].map((split) => (
                    <td key={`${index} ${split}`} class="number foreign">
                      {largestFit(grid, gpu, column, split)}
                    </td>
                  )),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  );
}
