"""Text classification with scikit-learn, tuned by hpo: bag of words and a linear model by SGD."""
import json

import hpo_trainer


def read_rows(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                rows.append((row["text"], str(row["label"])))
            except (ValueError, KeyError) as error:
                raise hpo_trainer.BadData(f"{path}:{number}: {error!r}") from error
    return [text for text, _ in rows], [label for _, label in rows]


def train(job, report):
    # Imported here: the worker's hello must not wait for it, and its absence is a trial's failure.
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import SGDClassifier
    from sklearn.metrics import f1_score

    params = job["params"]
    train_texts, train_labels = read_rows(job["train_path"])
    valid_texts, valid_labels = read_rows(job["validation_path"])
    vectorizer = HashingVectorizer(
        n_features=2 ** params["features.log2"], ngram_range=(1, params["features.ngrams"]))
    train_rows = vectorizer.transform(train_texts)
    valid_rows = vectorizer.transform(valid_texts)
    model = SGDClassifier(loss=params["loss"], alpha=params["alpha"], random_state=job["seed"] % 2**31)
    score = 0.0
    for epoch in range(1, job["epochs"] + 1):
        model.partial_fit(train_rows, train_labels, classes=sorted(set(train_labels)))
        score = f1_score(valid_labels, model.predict(valid_rows), average="macro")
        report(step=epoch, epoch=epoch, macro_f1=score)
    return {"macro_f1": score}


hpo_trainer.main(train)
